create schema api;
grant usage on schema api to anon, authenticated, service_role;
alter default privileges in schema api grant execute on functions to anon, authenticated, service_role;

-- In SQL, with a body that the server parses.
create function api.price_of(product text, on_day date default current_date) returns numeric
language sql stable
begin atomic
  select coalesce(
    (select p.price from public.price_periods p where p.sku = product and p.during @> on_day),
    (select price from public.products where sku = product)
  );
end;

create type api.order_item as (sku text, pieces int);

create function api.place_order(items api.order_item[]) returns bigint
language plpgsql security definer set search_path = ''
as $function$
declare
  placed public.orders;
  item api.order_item;
  number int := 0;
begin
  if coalesce(array_length(items, 1), 0) = 0 then
    raise exception using errcode = '22023', message = 'an order needs at least one item';
  end if;
  insert into public.orders (customer) values ((select auth.uid())) returning * into placed;
  foreach item in array items loop
    number := number + 1;
    update public.stock s set pieces = s.pieces - item.pieces where s.sku = item.sku;
    if not found then
      raise exception using errcode = 'P0002', message = format('there is no %s', item.sku), detail = number;
    end if;
    insert into public.order_lines (order_id, placed_at, line, sku, pieces, price)
    values (placed.id, placed.placed_at, number, item.sku, item.pieces, api.price_of(item.sku));
  end loop;
  update public.orders o
    set total = (select sum(l.amount) from public.order_lines l where l.order_id = placed.id)
    where o.id = placed.id;
  return placed.id;
exception
  when check_violation then
    raise exception using errcode = '23514', message = 'not enough in stock', hint = $hint$try fewer; or "later"$hint$;
end;
$function$;

create function api.search(query text) returns setof public.products
language sql stable rows 20 as $$
  select * from public.products where name ilike '%' || query || '%' or attributes ->> 'colour' = query;
$$;

create aggregate api.joined(text) (sfunc = textcat, stype = text, initcond = '');

create operator api.=~ (leftarg = text, rightarg = text, function = texticregexeq);
