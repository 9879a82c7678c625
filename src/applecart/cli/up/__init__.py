"""`applecart up`: run what there is of applecart on this machine until Ctrl-C."""

from applecart.cli.up.run import command

__all__ = ["command"]
