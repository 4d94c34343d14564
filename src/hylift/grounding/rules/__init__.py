"""One rule at a time: how it is grounded, how many groundings it has, what factors they make."""
