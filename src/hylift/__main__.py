"""`python -m hylift`."""

from hylift.cli import process

if __name__ == "__main__":
    process()
