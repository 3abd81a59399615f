"""What can go wrong, by who has to act."""


class Missing(Exception):
    """This host or this build lacks something; the text says what and how to get it. The pair is skipped."""


class ToolError(Exception):
    """A tool ran and failed, or said what can't be read. The pair is skipped, and the exit code is 5."""


class Cancelled(BaseException):
    """Ctrl-C or SIGTERM. Not an Exception: nothing on the way may take it for a failed tool."""
