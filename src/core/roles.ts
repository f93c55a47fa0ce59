// What a token of the customer API may do. Each role may do what those before it may.

export const roles = ["read", "clear", "write", "owner"] as const;
export type Role = (typeof roles)[number];

export function mayAct(has: Role, needed: Role): boolean {
  return roles.indexOf(has) >= roles.indexOf(needed);
}
