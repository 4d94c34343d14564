"""Where optimisers begin: single products, random mixtures, earlier posteriors."""
