// Tables of imports, as later releases have changed them.

/** Which instances of the site have nothing to import. */
export const importsWithout = `
  ALTER TABLE imports ADD COLUMN without_site text;
`;
