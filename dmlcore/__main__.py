"""Entry point of `python -m dmlcore`, the command line."""

from dmlcore.cli.main import main

if __name__ == "__main__":
    main()
