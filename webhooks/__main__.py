"""Make `python -m webhooks` run the service."""

from webhooks.main import main

main()
