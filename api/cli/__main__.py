"""Entry point of `python -m api.cli`, the same command as `millstream`."""

from api.cli.main import main

if __name__ == "__main__":
    main()
