"""Tables from an fsbl result file. Reads result.json and nothing else; Python 3.9, standard library only."""
