"""
The same predictions from ONNX
==============================

A model, its scaler included, becomes an ONNX file of elementary operators that any runtime
executes. The histogram is how far its values are from Python's: single precision, and nothing
else.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from parsimon import POLKClassifier
from parsimon.export import to_onnx

X, y = load_breast_cancer(return_X_y=True)
model = make_pipeline(StandardScaler(), POLKClassifier(random_state=0)).fit(X, y)
onnx_model = to_onnx(model)

from onnx.reference import ReferenceEvaluator  # noqa: E402

labels, scores = ReferenceEvaluator(onnx_model).run(
    ["label", "scores"], {"X": X.astype(np.float32)}
)
difference = np.abs(scores - model.decision_function(X))

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.hist(np.log10(difference + 1e-12), bins=40)
ax.set(xlabel="log10 of the difference of the scores", ylabel="samples")
ax.set_title(f"{(labels == model.predict(X)).mean():.0%} of the labels are the same")
plt.show()
