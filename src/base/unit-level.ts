// The unit's own level, by which a release knows whether the unit that started an agent has what it needs. `systemd/accel-agent.service` sets it; it is raised with
// every change of what the unit says that a process needs, for only a restart applies that (decision 0114). What it can do without, as `--expose-gc` (decision 0139), comes with the next restart.

export const unitLevel = "2";
export const unitLevelVariable = "ACCEL_AGENT_UNIT";
