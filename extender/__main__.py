"""Run the extender."""

from extender.main import main

main()
