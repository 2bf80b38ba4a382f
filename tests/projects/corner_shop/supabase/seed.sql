insert into products (sku, name, price, attributes) values
  ('TEA-0001', 'Green tea', 4.50, '{"colour": "green"}'),
  ('MUG-0002', 'Mug; "large"', 12, '{"colour": "blue"}');
insert into stock select sku, 5 from products;
insert into price_periods values ('TEA-0001', '[2020-01-01,2020-02-01)', 3.95);
