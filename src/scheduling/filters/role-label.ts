/** Label that says which stage of a request an endpoint serves. */
export const ROLE_LABEL = 'llm-d.ai/role';
