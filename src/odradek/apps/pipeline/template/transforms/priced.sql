-- Orders with the name of their category; one that nobody has described yet is kept, as 'unknown'.
SELECT /*+ BROADCAST(categories) */
       orders.order_id, orders.customer, orders.quantity, orders.amount, orders.at,
       coalesce(categories.category, 'unknown') AS category
FROM orders LEFT JOIN categories ON orders.category_id = categories.category_id
