with article as (
  insert into public.articles (slug, title, body) values
    ('reset-password', 'How to reset a password', 'Open the account page and choose reset.'),
    ('invoices', 'Where invoices are', 'Invoices are sent by mail each month.')
  returning id, slug
)
insert into public.sections (article_id, position, content, embedding)
select id, 1, slug, case slug when 'invoices' then '[0,1,0]' else '[1,0,0]' end::extensions.vector from article;
