"""Asset `report`: the report over all experiments, store/report/index.html, readable without a network."""
