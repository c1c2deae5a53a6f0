"""The magics of graph-notebook with a service, in a notebook, in an environment that has them.

    python graph_notebook_client.py HOST PORT

One line for each cell that prints.
"""

import json
import os
import sys

import nbformat
from nbclient import NotebookClient

# Else the package asks the metadata service of Amazon's machines.
os.environ |= {
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
CONFIGURATION = {
    "host": sys.argv[1],
    "port": int(sys.argv[2]),
    "ssl": False,
    "aws_region": "us-east-1",
    "sparql": {"path": "sparql"},
}
ROWS = "print(sorted(row['o']['value'] for row in found['results']['bindings']))"
CELLS = [
    "%load_ext graph_notebook.magics",
    f"%%graph_notebook_config\n{json.dumps(CONFIGURATION)}",
    "%%sparql\nINSERT DATA { <urn:n:a> <urn:n:name> 'Ann' ; <urn:n:knows> <urn:n:b> }",
    "%%sparql --store-to found\nSELECT ?o { <urn:n:a> ?p ?o }",
    ROWS,
    "%%sparql --store-to found\nCONSTRUCT WHERE { <urn:n:a> ?p ?o }",
    "print(sorted(found))",
    "%%sparql\nDELETE WHERE { <urn:n:a> ?p ?o }",
    "%%sparql --store-to found\nSELECT ?o { <urn:n:a> ?p ?o }",
    ROWS,
]

notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
# The widgets that show rows leave nbclient waiting until the time of a cell is over, then it goes on.
NotebookClient(notebook, timeout=30, kernel_name="python3").execute()
for cell in notebook.cells:
    if cell.source.startswith("print"):
        print(cell.outputs[0].text.strip())
