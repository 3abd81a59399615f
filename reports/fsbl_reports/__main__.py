import sys

from fsbl_reports.cli import main

sys.exit(main(sys.argv[1:]))
