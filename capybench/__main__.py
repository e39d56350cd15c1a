"""`python -m capybench`: the same as the command `capybench`."""

import sys

from capybench.cli import main

if __name__ == "__main__":
    sys.exit(main())
