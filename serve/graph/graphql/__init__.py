"""`/graphql`: GraphQL over HTTP, the schema as text, and a playground."""
