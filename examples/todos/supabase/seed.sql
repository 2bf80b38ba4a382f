insert into public.tips (id, body) values
  (1, 'Begin with the smallest thing that could be useful.'),
  (2, 'A list that nobody reads is a diary.'),
  (3, 'Finish something before noon.');
