"""Corpora: many audio files in, verified codes in shards out, on one machine or on several.

::

    inputs, manifest, tar_members   what there is to encode, as an ordered list of sources
    settings                        what decides the output
    feed                            one source, read ahead of its encoding, as whole frames
    schedule, lanes                 many sources through batched steps, on all cores
    rows, formats, *_shard          what is kept of a source, and the files it is kept in
    assembly, ledger                shards that are whole or absent, in a folder that remembers
    local_run, ray_run              the same work on this machine, or on a Ray cluster
    reader, verify, difference      the way back, and proofs
    statistics, report              what a corpus is like

Which rows a shard holds is decided by the list of sources and the settings alone, and so is every byte of the output: neither
batches nor threads, machines, interruptions or the order in which files are done show in it.
"""
