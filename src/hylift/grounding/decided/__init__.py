"""Relations and numbers that evidence decides before rules are grounded."""
