"""The shell: processes, logs, timeouts, retries, the journal, resuming. Emits events; listeners do the rest."""
