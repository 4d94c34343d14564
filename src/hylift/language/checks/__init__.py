"""What is wrong with a model, or worth a second look."""
