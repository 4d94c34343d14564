"""Rules and tables into a graph of classes, without the ground graph between them."""
