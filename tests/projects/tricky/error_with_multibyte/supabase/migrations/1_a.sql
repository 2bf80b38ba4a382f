create table "täble" (x int);
select 'äöü😀', nope;