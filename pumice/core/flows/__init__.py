"""
JobFlows: Jobs made of JobTemplates, in an order.

Everything here is pure: what is seen goes in, what is to be done comes out. Whether something
answers on the network is asked by the controller and comes in as well.
"""
