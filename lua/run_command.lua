--[[  lua/run_command.lua: one command of a plan in a dry run, which lua/dry_run/store.lua carries out or answers.
  KEYS[1] any     of any type   the key of the command
  ARGV[1] command
  ARGV[2] key, and each further argument of the command
  Returns the command's reply  ]]
return redis.call(unpack(ARGV))
