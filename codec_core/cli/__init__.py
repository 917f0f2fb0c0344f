"""The ``mimi`` command line: :mod:`codec_core.cli.main` and one module per command."""
