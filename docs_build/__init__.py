"""What the documentation is made of: blocks of pages and cells of examples, and what they do."""
