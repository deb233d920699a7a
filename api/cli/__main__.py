"""`python -m api.cli`, which is `millstream`."""

from api.cli.main import main

if __name__ == "__main__":
    main()
