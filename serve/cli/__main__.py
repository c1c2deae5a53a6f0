"""`python -m serve.cli`: the `graphdb` command without its console script."""

import sys

from serve.cli.main import main

sys.exit(main())
