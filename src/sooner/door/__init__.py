"""pytest's door into the engine: the controlling pytest's side (`session`) and the workers' (`worker`)."""
