//! Indices follow the products: through the queue, over failures, and when they are rebuilt.
