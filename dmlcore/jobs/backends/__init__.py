"""Where work on runs is done: by processes of this machine, or on a cluster, by an engine that is there already."""
