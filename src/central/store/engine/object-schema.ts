// What the store says of objects in a bucket, in the manner of schema.ts, and the step that makes it.

export type ObjectTables = {
  /**
   * Keys of objects that no row of `blobs` or `packages` has. `writing`: an upload may be under way, or was cut off; `removing`: to be removed from the
   * bucket. `since`: when it came to be so.
   */
  loose_objects: { key: string; state: "writing" | "removing"; since: string };
};

/** Columns of `store`. */
export type ObjectPlaceColumns = {
  /** Where blobs and packages lie; null: in the state directory. */
  objects: "s3" | null;
};

/** Columns of what may lie in a bucket. */
export type ObjectKeyColumns = {
  /** The key in the bucket, below the prefix of the settings; no other row ever has it. Null: it lies in the state directory. */
  object_key: string | null;
};

export const objectKeys = `
  ALTER TABLE store ADD COLUMN objects text;
  ALTER TABLE blobs ADD COLUMN object_key text;
  ALTER TABLE blobs ADD COLUMN when_dead text;
  ALTER TABLE packages ADD COLUMN object_key text;
  CREATE TABLE loose_objects (
    key text NOT NULL, state text NOT NULL, since text NOT NULL,
    CONSTRAINT loose_objects_pk PRIMARY KEY (key)
  );
`;
