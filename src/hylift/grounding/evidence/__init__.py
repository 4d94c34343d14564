"""Evidence: from files, tables and mappings to tables of the engine."""
