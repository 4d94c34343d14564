"""Liftings from coarse to fine: by clusters of real evidence, and by distance."""
