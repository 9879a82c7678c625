"""`python -m applecart` is the command `applecart`."""

from applecart.cli.main import main

if __name__ == "__main__":
    main()
