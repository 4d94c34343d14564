"""`python -m hylift`."""

from hylift.cli import main

if __name__ == "__main__":
    main()
