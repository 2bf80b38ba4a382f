-- Toft's stand-in for pg_jsonschema: a part of JSON Schema in SQL. A keyword that it does not know is refused
-- with 0A000, so that no answer is ever a guess.

create function _jsonschema_type(instance jsonb) returns text[]
language sql immutable
return case jsonb_typeof(instance)
  when 'number' then case when instance::numeric % 1 = 0 then array['number', 'integer'] else array['number'] end
  else array[jsonb_typeof(instance)] end;

create function jsonschema_validation_errors(schema json, instance json) returns text[]
language plpgsql immutable as $$
begin
  return @extschema@._jsonschema_errors(schema::jsonb, instance::jsonb, '');
end $$;

create function _jsonschema_errors(schema jsonb, instance jsonb, place text) returns text[]
language plpgsql immutable as $$
declare
  faults text[] := '{}';
  kind constant text := jsonb_typeof(instance);
  at constant text := case place when '' then 'the document' else place end;
  keyword text;
  rule jsonb;
  name text;
  part jsonb;
  good integer;
begin
  if jsonb_typeof(schema) = 'boolean' then
    return case when schema::boolean then '{}' else array[format('%s is not allowed', at)] end;
  end if;
  for keyword, rule in select * from jsonb_each(schema) loop
    case keyword
      when '$schema', '$id', '$comment', 'title', 'description', 'default', 'examples', 'readOnly', 'writeOnly',
           'deprecated', 'format', 'additionalProperties' then
        null;  -- says nothing about validity, or is looked at beside `properties`
      when 'type' then
        if not @extschema@._jsonschema_type(instance) && array(select jsonb_array_elements_text(
            case jsonb_typeof(rule) when 'array' then rule else jsonb_build_array(rule) end)) then
          faults := faults || format('%s is not of type %s', at, rule);
        end if;
      when 'enum' then
        if not exists (select from jsonb_array_elements(rule) e (value) where e.value = instance) then
          faults := faults || format('%s is not one of %s', at, rule);
        end if;
      when 'const' then
        if rule <> instance then
          faults := faults || format('%s is not %s', at, rule);
        end if;
      when 'required' then
        if kind = 'object' then
          for name in select jsonb_array_elements_text(rule) loop
            if not instance ? name then
              faults := faults || format('%I is a required property of %s', name, at);
            end if;
          end loop;
        end if;
      when 'properties' then
        if kind = 'object' then
          for name, part in select * from jsonb_each(rule) loop
            if instance ? name then
              faults := faults || @extschema@._jsonschema_errors(part, instance -> name, place || '/' || name);
            end if;
          end loop;
        end if;
      when 'items' then
        if kind = 'array' then
          if jsonb_typeof(rule) = 'array' then
            raise exception using errcode = '0A000',
              message = 'pg_jsonschema is a stand-in: `items` as an array is not known';
          end if;
          for part, good in select * from jsonb_array_elements(instance) with ordinality loop
            faults := faults || @extschema@._jsonschema_errors(rule, part, place || '/' || (good - 1));
          end loop;
        end if;
      when 'minimum' then
        if kind = 'number' and instance::numeric < rule::numeric then
          faults := faults || format('%s is less than the minimum of %s', at, rule);
        end if;
      when 'maximum' then
        if kind = 'number' and instance::numeric > rule::numeric then
          faults := faults || format('%s is greater than the maximum of %s', at, rule);
        end if;
      when 'exclusiveMinimum' then
        if kind = 'number' and instance::numeric <= rule::numeric then
          faults := faults || format('%s is not greater than %s', at, rule);
        end if;
      when 'exclusiveMaximum' then
        if kind = 'number' and instance::numeric >= rule::numeric then
          faults := faults || format('%s is not less than %s', at, rule);
        end if;
      when 'multipleOf' then
        if kind = 'number' and instance::numeric % rule::numeric <> 0 then
          faults := faults || format('%s is not a multiple of %s', at, rule);
        end if;
      when 'minLength' then
        if kind = 'string' and length(instance #>> '{}') < rule::numeric then
          faults := faults || format('%s is shorter than %s characters', at, rule);
        end if;
      when 'maxLength' then
        if kind = 'string' and length(instance #>> '{}') > rule::numeric then
          faults := faults || format('%s is longer than %s characters', at, rule);
        end if;
      when 'minItems' then
        if kind = 'array' and jsonb_array_length(instance) < rule::numeric then
          faults := faults || format('%s has less than %s items', at, rule);
        end if;
      when 'maxItems' then
        if kind = 'array' and jsonb_array_length(instance) > rule::numeric then
          faults := faults || format('%s has more than %s items', at, rule);
        end if;
      when 'uniqueItems' then
        if kind = 'array' and rule::boolean and (
            select count(*) <> count(distinct value) from jsonb_array_elements(instance)) then
          faults := faults || format('%s has items that are not unique', at);
        end if;
      when 'minProperties' then
        if kind = 'object' and (select count(*) from jsonb_object_keys(instance)) < rule::numeric then
          faults := faults || format('%s has less than %s properties', at, rule);
        end if;
      when 'maxProperties' then
        if kind = 'object' and (select count(*) from jsonb_object_keys(instance)) > rule::numeric then
          faults := faults || format('%s has more than %s properties', at, rule);
        end if;
      when 'allOf' then
        for part in select * from jsonb_array_elements(rule) loop
          faults := faults || @extschema@._jsonschema_errors(part, instance, place);
        end loop;
      when 'anyOf', 'oneOf' then
        select count(*) into good from jsonb_array_elements(rule) e (value)
        where @extschema@._jsonschema_errors(e.value, instance, place) = '{}';
        if good = 0 or (keyword = 'oneOf' and good > 1) then
          faults := faults || format('%s is valid under %s of the schemas of %s', at, good, keyword);
        end if;
      when 'not' then
        if @extschema@._jsonschema_errors(rule, instance, place) = '{}' then
          faults := faults || format('%s is what the schema excludes', at);
        end if;
      else
        raise exception using errcode = '0A000',
          message = format('pg_jsonschema is a stand-in: the keyword %I is not known', keyword);
    end case;
  end loop;
  if kind = 'object' and schema ? 'additionalProperties' then
    if schema ? 'patternProperties' then
      raise exception using errcode = '0A000',
        message = 'pg_jsonschema is a stand-in: patternProperties is not known';
    end if;
    for name in select k from jsonb_object_keys(instance) k where not coalesce(schema -> 'properties', '{}') ? k loop
      faults := faults || @extschema@._jsonschema_errors(
        schema -> 'additionalProperties', instance -> name, place || '/' || name);
    end loop;
  end if;
  return faults;
end $$;
comment on function jsonschema_validation_errors(json, json) is
  'Stand-in by Toft: a part of JSON Schema, other keywords are refused.';

create function jsonb_matches_schema(schema json, instance jsonb) returns boolean
language plpgsql immutable strict as $$
begin
  return @extschema@._jsonschema_errors(schema::jsonb, instance, '') = '{}';
end $$;
create function json_matches_schema(schema json, instance json) returns boolean
language plpgsql immutable strict as $$
begin
  return @extschema@._jsonschema_errors(schema::jsonb, instance::jsonb, '') = '{}';
end $$;

create function jsonschema_is_valid(schema json) returns boolean
language plpgsql immutable strict as $$
begin
  return json_typeof(schema) in ('object', 'boolean');
end $$;
