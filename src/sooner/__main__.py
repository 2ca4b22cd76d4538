"""`python -m sooner` is the `sooner` command."""

from sooner.cli.main import main

if __name__ == "__main__":
    main()
