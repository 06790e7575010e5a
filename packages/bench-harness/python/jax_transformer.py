"""The Transformer language model of @roofline/transformer in JAX, with its loss and AdamW as pure functions.

The arithmetic is that of transformer_lm.py under autocast: weights, residual stream, norms and loss in float32, products
and attention in `dtype`, to which the weights are cast where they are used. Weights are laid out as inputs × outputs.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "output_proj")


def make_weights(config, key):
    """Float32 weights from the distributions that the other models draw from."""
    dimension, hidden, vocabulary = (
        config[name] for name in ("modelDimension", "feedForwardDimension", "vocabularySize")
    )
    keys = iter(jax.random.split(key, 2 + 7 * config["layers"]))

    def linear(inputs, outputs):
        std = math.sqrt(2 / (inputs + outputs))
        return std * jax.random.truncated_normal(next(keys), -3, 3, (inputs, outputs), jnp.float32)

    def block():
        return {
            **{name: linear(dimension, dimension) for name in PROJECTIONS},
            "w1": linear(dimension, hidden),
            "w2": linear(hidden, dimension),
            "w3": linear(dimension, hidden),
            "ln1": jnp.ones(dimension, jnp.float32),
            "ln2": jnp.ones(dimension, jnp.float32),
        }

    return {
        "token_embeddings": jax.random.normal(next(keys), (vocabulary, dimension), jnp.float32),
        "layers": [block() for _ in range(config["layers"])],
        "ln_final": jnp.ones(dimension, jnp.float32),
        "lm_head": linear(dimension, vocabulary),
    }


def make_model(config, context, dtype, attention):
    """Logits of weights and ids; `attention` is an implementation of jax.nn.dot_product_attention."""
    heads = config["heads"]
    head_dimension = config["modelDimension"] // heads
    theta = config.get("ropeTheta", 10000.0)
    # In float64 first, as the others compute them; the axis of length 1 is that of the heads.
    rates = theta ** -(np.arange(0, head_dimension, 2) / head_dimension)
    angles = np.arange(context)[:, None, None] * rates
    cos, sin = (jnp.asarray(f(angles), jnp.float32) for f in (np.cos, np.sin))

    def product(x, weight):
        return x.astype(dtype) @ weight.astype(dtype)

    def norm(x, weight, eps=1e-5):
        return weight * (x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps))

    def rotate(x):
        even, odd = x[..., 0::2], x[..., 1::2]
        return jnp.stack((cos * even - sin * odd, sin * even + cos * odd), -1).reshape(x.shape).astype(dtype)

    def attend(x, layer):
        batch, tokens, dimension = x.shape
        q, k, v = (
            product(x, layer[name]).reshape(batch, tokens, heads, head_dimension) for name in PROJECTIONS[:3]
        )
        attended = jax.nn.dot_product_attention(
            rotate(q), rotate(k), v, is_causal=True, implementation=attention
        )
        return product(attended.reshape(batch, tokens, dimension), layer["output_proj"])

    def feed_forward(x, layer):
        return product(jax.nn.silu(product(x, layer["w1"])) * product(x, layer["w3"]), layer["w2"])

    def logits(weights, ids):
        x = weights["token_embeddings"][ids]
        for layer in weights["layers"]:
            x = x + attend(norm(x, layer["ln1"]), layer)
            x = x + feed_forward(norm(x, layer["ln2"]), layer)
        return product(norm(x, weights["ln_final"]), weights["lm_head"])

    return logits


def cross_entropy(logits, targets):
    """The mean over all tokens, in float32. The logit of each target by a mask: a gather has a slow gradient."""
    logits = logits.astype(jnp.float32)
    is_target = jnp.arange(logits.shape[-1]) == targets[..., None]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.sum(jnp.where(is_target, logits, 0), -1))


def adamw_state(weights):
    """Weights, both moments, and the number of steps."""
    zeros = lambda: jax.tree.map(jnp.zeros_like, weights)
    return weights, zeros(), zeros(), jnp.zeros((), jnp.int32)


def adamw(state, gradients, rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, decay=1e-2):
    """One step, with the defaults of torch.optim.AdamW; gives the next state."""
    weights, first, second, count = state
    count = count + 1
    first = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, first, gradients)
    second = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, second, gradients)
    step_size = rate / (1 - beta1 ** count.astype(jnp.float32))
    correction = jnp.sqrt(1 - beta2 ** count.astype(jnp.float32))

    def update(weight, m, v):
        return weight * (1 - rate * decay) - step_size * m / (jnp.sqrt(v) / correction + eps)

    return jax.tree.map(update, weights, first, second), first, second, count
