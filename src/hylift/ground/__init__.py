"""Model and tables -> FactorGraph."""
