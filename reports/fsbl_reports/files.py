"""Files that are there whole or not at all."""
import os
import tempfile

from fsbl_reports.load import ReportError


def write_whole(path, text):
    """Writes beside `path`, syncs, renames."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix="." + path.name + ".", dir=path.parent)
    except OSError as error:
        raise ReportError(f"write {path}", error.strerror or str(error), "choose another --out folder") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            os.fsync(file.fileno())
        os.replace(name, path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        if os.path.exists(name):
            os.unlink(name)
        raise ReportError(f"write {path}", error.strerror or str(error), "choose another --out folder") from error


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
