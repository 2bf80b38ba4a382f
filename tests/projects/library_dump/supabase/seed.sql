insert into books (title, isbn, shelf, tags) values
  ('The Wind; and the "Rain"', '978-3-16-148410-0', row('A', 3), '{poetry,weather}'),
  ('A Quiet Mill', null, row('B', 1), '{novel}');

insert into auth.users (id, email, raw_user_meta_data)
values ('11111111-1111-4111-8111-111111111111', 'reader@example.org', '{"name": "Reader"}');

insert into loans (book_id, reader, lent_on)
values (1, '11111111-1111-4111-8111-111111111111', current_date - 40);
