"""A code of any two records as one of the mechanisms that release table rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reticent.core.coded_rows import CodedRows
from reticent.systems.power.code_fitting import NODES, Wanted, code_nodes
from reticent.systems.power.code_fitting import PublicRows as CodeRows
from reticent.systems.power.code_inputs import SchemaRows
from reticent.systems.power.code_query import LABEL, CodeQuery
from reticent.systems.power.mechanism_choice import PublicRows
from reticent.systems.power.query import PowerSetting, neighbours_within
from reticent.systems.scores import channel_scores, joint_of
from reticent.tables.schema import TabularSchema


def code_query(
    schema: TabularSchema, required: PowerSetting, rows: PublicRows, *, seed: int
) -> tuple[CodeQuery, PowerSetting]:
    """Return a code of any two records for one label, and its plan with its worth on rows held out.

    Args:
        schema: the public description of rows.
        required: budget, radius and scoring.
        rows: public rows.
        seed: seed of nodes and models.

    Raises:
        InvalidInput: nothing can be told of these rows.
    """
    every = CodedRows.of(np.concatenate([rows.train, rows.held]))
    labels = np.concatenate([rows.train_labels, rows.held_labels])
    wanted = Wanted(LABEL, np.arange(int(labels.max()) + 1), labels, None)
    public = CodeRows(
        SchemaRows(schema), every, (wanted,), (), seed, required.scoring, len(rows.held)
    )
    nodes = code_nodes(public, None, most=NODES)
    found = nodes.best(required.epsilon)
    held = found.nodes(CodedRows.of(rows.held))
    joint = joint_of(held, rows.held_labels, bins=found.mechanism.nodes.size)
    scores = channel_scores(found.mechanism.matrix.T @ joint)
    channel = replace(found.mechanism, adjacency=neighbours_within(required.radius, schema))
    plan = replace(required, mechanism="code", delta=0.0)
    return replace(found, mechanism=channel), plan.worth(scores)
