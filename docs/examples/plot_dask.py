"""
One model from data on several machines
=======================================

Each partition has seen a piece of the line and nothing else. The workers send what their samples
say about the points, never the samples, and the result is the model that one machine makes of all
of them.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

import parsimon.dask
from parsimon import POLKRegressor

random = np.random.default_rng(0)
x = np.sort(random.uniform(0, 10, 8000))
y = np.sin(2 * x) + 0.1 * x + 0.2 * random.normal(size=x.size)
X = x[:, None]

# Two workers in this process; a cluster's address does the same with many machines.
options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
with LocalCluster(**options) as cluster, Client(cluster):
    model = parsimon.dask.POLKRegressor(random_state=0)
    model.fit(da.from_array(X, chunks=(1000, 1)), da.from_array(y, chunks=1000))
    together = model.to_local()
alone = POLKRegressor(random_state=0).fit(X, y)

at = np.linspace(0, 10, 500)[:, None]
apart = np.abs(together.predict(at) - alone.predict(at)).max()
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for part in range(8):
    own = slice(1000 * part, 1000 * (part + 1), 5)
    ax.scatter(x[own], y[own], s=5, color=("0.75", "0.5")[part % 2])
ax.plot(at, alone.predict(at), lw=3, label=f"one machine, {alone.model_order_} points")
label = f"8 partitions, 2 workers, {together.model_order_} points"
ax.plot(at, together.predict(at), "--", color="black", label=label)
ax.set_title(f"The two are at most {apart:.3f} apart; grey: what each partition has seen")
ax.legend()
plt.show()
