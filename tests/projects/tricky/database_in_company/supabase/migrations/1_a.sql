create table a ();
create database other;